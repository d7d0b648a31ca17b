"""Holds the manifests of a folder against their schemas and prints them as JSON: {"compose": …, "org1": […], …}.

The schema of compose files is the one that docker-compose 1.29 brings, from before there was a `name`; those of Kubernetes come with
kubernetes-validate.
"""

import copy
import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.37"

folder, compose_schema = map(pathlib.Path, sys.argv[1:])
schema = json.loads(compose_schema.read_text())


def check_compose(document):
    jsonschema.Draft7Validator(schema).validate({key: value for key, value in document.items() if key != "name"})


def check_kubernetes(document):
    kubernetes_validate.validate(document, KUBERNETES, strict=True)


def must_be_refused(check, document, break_it):
    broken = copy.deepcopy(document)
    break_it(broken)
    try:
        check(broken)
    except Exception:
        return
    sys.exit("a broken manifest is accepted")


compose = yaml.safe_load((folder / "compose.yaml").read_text())
check_compose(compose)
must_be_refused(check_compose, compose, lambda broken: broken["services"]["org1"].update(helthcheck=1))
found = {"compose": compose}
for path in sorted((folder / "kubernetes").glob("*.yaml")):
    documents = list(yaml.safe_load_all(path.read_text()))
    for document in documents:
        check_kubernetes(document)
    stateful = documents[-1]
    must_be_refused(check_kubernetes, stateful, lambda broken: broken["spec"].update(replicas="one"))
    must_be_refused(check_kubernetes, stateful, lambda broken: broken["spec"]["template"]["spec"].update(container=[]))
    found[path.stem] = documents
print(json.dumps(found))
