"""What of Kubeflow's kinds examples/kubernetes/ uses, as JSON schemas; a member that is not here is a mistake there.

Written by hand after the operators' own definitions:

PyTorchJob  kubeflow/training-operator v1, manifests/base/crds/kubeflow.org_pytorchjobs.yaml, and
            pkg/controller.v1/pytorch/{elastic,envvar}.go: "pytorch" is the container that gets the variables,
            "pytorchjob-port" the port that the endpoint is made of.
TrainJob    kubeflow/trainer v2, pkg/apis/trainer/v1alpha1/trainjob_types.go.

Pod templates are Kubernetes' own, and validated as such."""

INTEGER = {"type": "integer", "minimum": 0}
TEXT = {"type": "string", "minLength": 1}
NAME = {"type": "string", "pattern": "^[a-z]([-a-z0-9]*[a-z0-9])?$", "maxLength": 63}


def an_object(required=(), **properties):
    return {"type": "object", "additionalProperties": False, "required": list(required), "properties": properties}


METADATA = an_object(["name"], name=NAME, namespace=NAME, labels={"type": "object"}, annotations={"type": "object"})

REPLICAS = an_object(
    ["replicas", "template"],
    replicas=INTEGER,
    restartPolicy={"enum": ["Always", "OnFailure", "Never", "ExitCode"]},
    template=an_object(["spec"], metadata={"type": "object"}, spec={
        "type": "object",
        "required": ["containers"],
        "properties": {"containers": {"type": "array", "minItems": 1, "contains": {
            "properties": {"name": {"const": "pytorch"}}}}},
    }))

PYTORCHJOB = an_object(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "kubeflow.org/v1"},
    kind={"const": "PyTorchJob"},
    metadata=METADATA,
    spec=an_object(
        ["pytorchReplicaSpecs"],
        nprocPerNode={"type": "string", "pattern": "^(auto|cpu|gpu|[1-9][0-9]*)$"},
        elasticPolicy=an_object(
            minReplicas=INTEGER, maxReplicas=INTEGER, maxRestarts=INTEGER, nProcPerNode=INTEGER,
            rdzvBackend={"enum": ["c10d", "etcd", "etcd-v2"]}, rdzvId=TEXT, rdzvHost=TEXT, rdzvPort=INTEGER,
            standalone={"type": "boolean"},
            rdzvConf={"type": "array", "items": an_object(["key", "value"], key=TEXT, value=TEXT)}),
        runPolicy={"type": "object"},
        pytorchReplicaSpecs=an_object(Master=REPLICAS, Worker=REPLICAS)))

TRAINJOB = an_object(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "trainer.kubeflow.org/v1alpha1"},
    kind={"const": "TrainJob"},
    metadata=METADATA,
    spec=an_object(
        ["runtimeRef"],
        runtimeRef=an_object(["name"], name=TEXT, apiGroup=TEXT, kind=TEXT),
        trainer=an_object(
            image=TEXT,
            command={"type": "array", "items": {"type": "string"}, "maxItems": 128},
            args={"type": "array", "items": {"type": "string"}, "maxItems": 128},
            env={"type": "array", "items": an_object(["name"], name=TEXT, value={"type": "string"},
                                                     valueFrom={"type": "object"})},
            numNodes={"type": "integer", "minimum": 1},
            numProcPerNode={"type": ["integer", "string"]},
            resourcesPerNode=an_object(limits={"type": "object"}, requests={"type": "object"})),
        suspend={"type": "boolean"}))

SCHEMAS = {"PyTorchJob": PYTORCHJOB, "TrainJob": TRAINJOB}
