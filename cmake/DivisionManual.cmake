# The manual page and completions of shells, which the program itself makes from its tables of options. Left out where a
# cross build has no emulator to run it with.
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  return()
endif()

set(manual_directory ${PROJECT_BINARY_DIR}/manual)
file(MAKE_DIRECTORY ${manual_directory})
add_custom_command(
  OUTPUT ${manual_directory}/division.1 ${manual_directory}/division ${manual_directory}/_division
  COMMAND division_program help --man > ${manual_directory}/division.1
  COMMAND division_program help --bash > ${manual_directory}/division
  COMMAND division_program help --zsh > ${manual_directory}/_division
  DEPENDS division_program
  VERBATIM)
add_custom_target(manual ALL
  DEPENDS ${manual_directory}/division.1 ${manual_directory}/division ${manual_directory}/_division)

install(FILES ${manual_directory}/division.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${manual_directory}/division DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
# Debian's zsh looks for completions of packages in the second folder, for those of /usr/local in the first.
install(FILES ${manual_directory}/_division DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${manual_directory}/_division DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
