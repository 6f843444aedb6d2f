#!/usr/bin/env bash
# testcmd.sh FUNCTION: run one function of Kubernetes' test/cmd as its own runner would.
#
# Needs KUBE_ROOT (the sources, read in place), SECURE_API_PORT, SERVER_CERTIFICATE (base64), TEST_KUBECONFIG and
# ADMIN_TOKEN (an administrator), a kubectl in PATH, and an empty working directory.
set -o errexit -o nounset -o pipefail

# Scripts name their files from the root of the sources, and write others beside them: the sources stay as they are.
for part in api cmd cluster hack pkg staging test third_party; do
    [[ -e $KUBE_ROOT/$part ]] && ln -s "$KUBE_ROOT/$part" "$part"
done
export KUBE_TEMP=$PWD/temp TMPDIR=$PWD/temp KUBE_JUNIT_REPORT_DIR=$PWD/junit ARTIFACTS=$PWD/artifacts
mkdir -p "$KUBE_TEMP" "$ARTIFACTS"
base64 --decode <<< "$SERVER_CERTIFICATE" > "$TMPDIR/apiserver.crt"
export HOME=$KUBE_TEMP LANG=C ALLOW_SKEW=1 SUPPORTED_RESOURCES="*"
# init.sh gives the libraries a git tree and a Go tool chain to look at; neither is needed to run kubectl.
source "$KUBE_ROOT/hack/lib/init.sh"
source "$KUBE_ROOT/hack/lib/test.sh"
THIS_PLATFORM_BIN=$(dirname "$(command -v kubectl)")
source "$KUBE_ROOT/test/cmd/legacy-script.sh"
kube::util::ensure-gnu-sed

CONTEXT=test
mkdir -p "$HOME/.kube"
cp "$TEST_KUBECONFIG" "$HOME/.kube/config"
kubectl config rename-context "$(kubectl config current-context)" "$CONTEXT" >/dev/null

function_to_run=$1
# runTests calls this with a name made from WHAT; what runs is what was asked for.
record_command() {
    set +o errexit
    (
        set -o errexit -o nounset
        trap stop-proxy EXIT
        kube_flags_with_token=("${kube_flags_without_token[@]}" "--token=$ADMIN_TOKEN")
        "$function_to_run"
    )
    local code=$?
    set -o errexit
    if [[ $code -ne 0 ]]; then
        echo "FUNCTION FAILED: $function_to_run ($code)"
        exit 1
    fi
    echo "FUNCTION PASSED: $function_to_run"
    exit 0
}
WHAT=it SUPPORTED_RESOURCES=("*") runTests
