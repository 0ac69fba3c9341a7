# A room is a top-level folder, a static library and an include path of its own.
#
#   troupe_room(model DEPENDS base config LIBRARIES PkgConfig::pcre2 PRIVATE_LIBRARIES ... PRECOMPILE <caf/all.hpp>)
#
# PRECOMPILE names headers of libraries that are slow to compile; each file still includes what it uses.
#
# Headers are included as "room/file.hpp". Each room's include path holds only that room (a link in the build tree), so a
# room can include another one only when it names it in DEPENDS: the direction of the architecture is checked by the compiler.
function(troupe_room name)
  cmake_parse_arguments(ROOM "" "" "DEPENDS;LIBRARIES;PRIVATE_LIBRARIES;PRECOMPILE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")  # a program on top of the room, not a part of it
  set(view ${CMAKE_BINARY_DIR}/rooms/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_SOURCE_DIR}/${name} ${view}/${name} SYMBOLIC)
  list(TRANSFORM ROOM_DEPENDS PREPEND troupe_ OUTPUT_VARIABLE depends)
  if(sources)
    add_library(troupe_${name} STATIC ${sources})
    set(scope PUBLIC)
    target_link_libraries(troupe_${name} PRIVATE troupe_warnings ${ROOM_PRIVATE_LIBRARIES})
    if(ROOM_PRECOMPILE)
      target_precompile_headers(troupe_${name} PRIVATE ${ROOM_PRECOMPILE})
    endif()
  else()
    add_library(troupe_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(troupe_${name} ${scope} ${view})
  target_link_libraries(troupe_${name} ${scope} ${depends} ${ROOM_LIBRARIES})
endfunction()

# The tests of a room: every tests/<room>/*.cpp in one GoogleTest program, named test_<room>.
function(troupe_room_tests name)
  cmake_parse_arguments(TESTS "" "" "DEPENDS;LIBRARIES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  list(TRANSFORM TESTS_DEPENDS PREPEND troupe_ OUTPUT_VARIABLE depends)
  target_link_libraries(test_${name} PRIVATE troupe_${name} ${depends} ${TESTS_LIBRARIES} troupe_warnings GTest::gmock GTest::gtest_main)
  target_precompile_headers(test_${name} REUSE_FROM test_headers)
  target_compile_definitions(test_${name} PRIVATE TROUPE_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
  gtest_discover_tests(test_${name} TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60 PROPERTIES TIMEOUT 300 LABELS "${name}")
endfunction()
