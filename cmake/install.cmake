# The headers and what find_package(gmlake) reads.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/gmlake)
configure_package_config_file(cmake/gmlake-config.cmake.in gmlake-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(gmlake-config-version.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)

install(DIRECTORY include/gmlake TYPE INCLUDE FILES_MATCHING PATTERN "*.hpp")
install(FILES LICENSE TYPE DOC)
install(TARGETS gmlake EXPORT gmlake-targets)
install(EXPORT gmlake-targets NAMESPACE gmlake:: DESTINATION ${package_dir})
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/gmlake-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/gmlake-config-version.cmake
              cmake/gmlake-dependencies.cmake DESTINATION ${package_dir})
