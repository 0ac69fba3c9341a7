// Nothing: it exists so that the precompiled headers of the tests have a target to belong to.
