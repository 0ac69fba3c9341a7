#include <gtest/gtest.h>

#include <cstring>
#include <iostream>

#include "measure.hpp"

/// Runs the tests; with --table it prints the table of docs/conformance.md instead.
int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--table") == 0) {
    const auto done = troupe::conformance::write_table(std::cout);
    if (!done) std::cerr << done.error().to_string() << '\n';
    return done ? 0 : 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
