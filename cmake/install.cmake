# Installation: the command, both libraries, the headers, a pkg-config file and a CMake package (loam::shared, loam::static).
if(TARGET loam)
  install(TARGETS loam RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS loam_shared loam_static EXPORT loam-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY include/loam DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(FILES models/loam-stories.gguf DESTINATION ${CMAKE_INSTALL_DATADIR}/loam OPTIONAL)
install(FILES LICENSE NOTICE DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(LOAM_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/loam)
install(EXPORT loam-targets NAMESPACE loam:: DESTINATION ${LOAM_CMAKE_DIR})
configure_package_config_file(cmake/loam-config.cmake.in loam-config.cmake INSTALL_DESTINATION ${LOAM_CMAKE_DIR})
write_basic_package_version_file(loam-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/loam-config.cmake ${CMAKE_BINARY_DIR}/loam-config-version.cmake DESTINATION ${LOAM_CMAKE_DIR})

# The prefix is found from where the file lies, so that an installation can be moved.
file(RELATIVE_PATH LOAM_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
if(LOAM_JANSSON)
  set(LOAM_PC_JANSSON " jansson")
endif()
configure_file(cmake/loam.pc.in loam.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/loam.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
