#!/usr/bin/env bash
# What is installed is removed again, all of it and nothing else; the Debian package has the program, and it runs.
set -euo pipefail
cd "$DV_TEMP"

fail() {
    echo "FAILED: $*"
    exit 1
}

# ---- uninstall ---------------------------------------------------------------------------------

export DESTDIR=$DV_TEMP/stage
cmake --install "$DV_BUILD_DIR" --prefix /opt/here >/dev/null
echo "somebody else's" >stage/opt/here/bin/other
mkdir stage/opt/here/share/empty
[[ -x stage/opt/here/bin/division ]] || fail "nothing was installed"
"$DV_SOURCE_DIR/scripts/uninstall" "$DV_BUILD_DIR/install_manifest.txt" >told
grep -q "stage/opt/here/bin/division" told || fail "it does not say what it removes"
left=$(find stage -type f)
[[ $left == stage/opt/here/bin/other ]] || fail "left behind: $left"
[[ ! -e stage/opt/here/include/division && -e stage/opt/here/share/empty ]] || fail "the wrong folders are left"
unset DESTDIR
! "$DV_SOURCE_DIR/scripts/uninstall" nowhere >told 2>&1 || fail "a manifest that is not there"
grep -q "nothing was installed from here" told || fail "it does not say what is wrong"

# ---- the Debian package ------------------------------------------------------------------------

if [[ -n $DV_CFLAGS || $DV_PROGRAM == */emulated/* ]]; then
    echo "left out: the Debian package, which is for a build without sanitizers and for this processor"
    exit 0
fi
if ! command -v dpkg-shlibdeps >/dev/null || ! command -v file >/dev/null; then
    echo "left out: the Debian package, which needs packages dpkg-dev and file"
    exit 0
fi
cpack --config "$DV_BUILD_DIR/CPackConfig.cmake" -B "$DV_TEMP/packages" >told || { cat told && fail "cpack"; }
package=$(echo packages/division_*.deb)
dpkg-deb -f "$package" Depends | tee depends
grep -q libdnnl depends || fail "the package does not depend on oneDNN"
dpkg-deb -x "$package" unpacked
unpacked/usr/bin/division models >/dev/null || fail "the packaged program does not run"
for file in man/man1/division.1 bash-completion/completions/division zsh/vendor-completions/_division; do
    [[ -s unpacked/usr/share/$file || -s unpacked/usr/share/$file.gz ]] || fail "the package has no $file"
done
