# Tests. Every tests/FOLDER/NAME.c is one program and one test, FOLDER.NAME; helpers shared by tests lie in tests/support.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

file(GLOB LOAM_TEST_SUPPORT CONFIGURE_DEPENDS tests/support/*.c)
add_library(loam_test_support STATIC ${LOAM_TEST_SUPPORT})
target_include_directories(loam_test_support PUBLIC tests/support)
target_compile_definitions(loam_test_support PUBLIC LOAM_SHARED_DIR="${LOAM_SHARED_DIR}"
  LOAM_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/golden/data" LOAM_COMMAND="${CMAKE_BINARY_DIR}/loam")
target_link_libraries(loam_test_support PUBLIC loam_internal PkgConfig::CMOCKA)

function(loam_test folder name)
  set_tests_properties(${folder}.${name} PROPERTIES TIMEOUT 300 SKIP_RETURN_CODE 77 LABELS ${folder})
endfunction()

foreach(folder unit kern golden e2e faults)
  file(GLOB sources CONFIGURE_DEPENDS tests/${folder}/*.c)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(test_${folder}_${name} ${source})
    target_link_libraries(test_${folder}_${name} PRIVATE loam_test_support)
    if(TARGET loam)
      add_dependencies(test_${folder}_${name} loam)
    endif()
    add_test(NAME ${folder}.${name} COMMAND test_${folder}_${name})
    loam_test(${folder} ${name})
  endforeach()
endforeach()

# Fuzz targets without a fuzzer: each replays its corpus.
file(GLOB sources CONFIGURE_DEPENDS fuzz/*.c)
list(FILTER sources EXCLUDE REGEX "/replay\\.c$")
if(NOT LOAM_FUZZ)
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(replay_${name} ${source} fuzz/replay.c)
    target_link_libraries(replay_${name} PRIVATE loam_internal)
    add_test(NAME fuzz.${name} COMMAND replay_${name} ${CMAKE_SOURCE_DIR}/fuzz/corpus/${name})
    loam_test(fuzz ${name})
  endforeach()
endif()

# The house itself: a test that must fail (can the runner fail?), the symbols, an installation, the program of the README.
add_executable(test_house_always_fails tests/house/always_fails.c)
target_link_libraries(test_house_always_fails PRIVATE loam_test_support)
add_test(NAME house.always_fails COMMAND test_house_always_fails)
loam_test(house always_fails)
set_tests_properties(house.always_fails PROPERTIES WILL_FAIL TRUE)

add_test(NAME house.symbols COMMAND ${CMAKE_SOURCE_DIR}/tools/lint --symbols ${CMAKE_BINARY_DIR})
loam_test(house symbols)
