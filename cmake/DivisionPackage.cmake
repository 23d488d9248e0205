# `cpack`, or `make deb`: one Debian package of all that `make install` installs.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME division)
set(CPACK_PACKAGE_CONTACT "DIVISION maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT) # division_0.1.0_amd64.deb
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
# For `division data fetch`, which opens these libraries itself.
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates, libcurl4t64 | libcurl4, libssl3t64 | libssl3")
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
