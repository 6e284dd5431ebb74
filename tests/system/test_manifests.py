"""examples/kubernetes: each manifest is one that Kubernetes, or the operator of its kind, takes, and its command lines are
such as elastic-run takes."""
# ctest: release-only

import pathlib

import jsonschema
import kubernetes_validate
import pytest
import yaml

from kubeflow_schemas import SCHEMAS

MANIFESTS = pathlib.Path(__file__).parents[2] / "examples" / "kubernetes"
TOKEN_FILE = "token_file=/etc/elastic-run/token"
VERSION = kubernetes_validate.latest_version()


def find_documents():
    for path in sorted(MANIFESTS.glob("*.yaml")):
        for number, document in enumerate(yaml.safe_load_all(path.read_text())):
            yield pytest.param(document, id=f"{path.stem}-{number}-{document['kind']}")


DOCUMENTS = list(find_documents())


def validate(document):
    if document["kind"] not in SCHEMAS:
        return kubernetes_validate.validate(document, VERSION, strict=True)
    jsonschema.validate(document, SCHEMAS[document["kind"]])
    for template in templates(document):  # a pod that such a template makes
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": template["spec"]}
        kubernetes_validate.validate(pod, VERSION, strict=True)


def templates(value):
    """Every pod template in a document."""
    if isinstance(value, list):
        for each in value:
            yield from templates(each)
    if isinstance(value, dict):
        for key, each in value.items():
            if key.lower().endswith("template") and "containers" in each.get("spec", {}):
                yield each
            yield from templates(each)


def commands(document):
    containers = [each for template in templates(document)
                  for each in [*template["spec"].get("initContainers", []), *template["spec"]["containers"]]]
    return [each["command"] for each in [*containers, document["spec"].get("trainer", {})] if "command" in each]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_manifest_is_one_that_its_system_takes(document):
    validate(document)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_member_that_nobody_knows_is_found(document):
    broken = document | {"spec": document["spec"] | {"notThere": 1}}
    with pytest.raises(Exception, match="notThere"):
        validate(broken)


@pytest.mark.parametrize("document", [each for each in DOCUMENTS if commands(each.values[0])])
def test_the_command_lines_of_manifests_are_such_as_elastic_run_takes(document, elastic_run, tmp_path):
    (tmp_path / "train.py").write_text("")
    for command in commands(document):
        program, *arguments = command
        assert program.removeprefix("/") == "elastic-run"
        if "--coordinator-only" in arguments:
            continue  # it serves for ever; test_container.py runs it
        (tmp_path / "token").write_text("s3cret\n")
        arguments = [argument.replace("=gpu", "=2").replace(TOKEN_FILE, f"token_file={tmp_path}/token")
                     for argument in arguments]
        result = elastic_run("--dry-run", *arguments)
        assert result.returncode == 0, result
        assert "no effect" not in result.stderr


def test_a_token_lies_in_a_secret_that_is_mounted_for_its_pods_alone():
    """Where a command line names a token's file: and all pods of that manifest do, or they would not know each other."""
    documents = yaml.safe_load_all((MANIFESTS / "elastic.yaml").read_text())
    pods = [template["spec"] for document in documents for template in templates(document)]
    assert len(pods) == 2
    for pod in pods:
        [container] = pod["containers"]
        assert f"--rdzv-conf={TOKEN_FILE}" in container["command"]
        [mount] = [each for each in container["volumeMounts"] if each["mountPath"] == "/etc/elastic-run"]
        [volume] = [each for each in pod["volumes"] if each["name"] == mount["name"]]
        assert mount["readOnly"] is True
        assert volume["secret"] == {"secretName": "train-token", "defaultMode": 0o400}
# ctest: gate
