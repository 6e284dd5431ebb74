"""What of the operators' kinds examples/kubernetes/ uses, as JSON schemas; a member that is not here is a mistake there.

Written by hand after the operators' own definitions:

PyTorchJob  kubeflow/training-operator v1, manifests/base/crds/kubeflow.org_pytorchjobs.yaml, and
            pkg/controller.v1/pytorch/{elastic,envvar}.go: "pytorch" is the container that gets the variables,
            "pytorchjob-port" the port that the endpoint is made of.
TrainJob    kubeflow/trainer v2, pkg/apis/trainer/v1alpha1/trainjob_types.go; ClusterTrainingRuntime:
            trainingruntime_types.go there.
JobSet      kubernetes-sigs/jobset, api/jobset/v1alpha2/jobset_types.go.
LeaderWorkerSet  kubernetes-sigs/lws, api/leaderworkerset/v1/leaderworkerset_types.go.

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

FAILURE_POLICY = an_object(maxRestarts=INTEGER, restartStrategy={"enum": ["Recreate", "BlockingRecreate"]})
# A Job's or a pod's template; what is below is validated as a pod.
TEMPLATE = an_object(["spec"], metadata={"type": "object"}, spec={"type": "object"})
REPLICATED_JOBS = {"type": "array", "minItems": 1, "items": an_object(
    ["name", "template"], name=NAME, replicas=INTEGER, groupName=TEXT,
    template=an_object(["spec"], metadata={"type": "object"}, spec=an_object(
        ["template"], completions=INTEGER, parallelism=INTEGER, completionMode={"enum": ["Indexed", "NonIndexed"]},
        backoffLimit=INTEGER, podFailurePolicy={"type": "object"}, template=TEMPLATE)))}

JOBSET = an_object(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "jobset.x-k8s.io/v1alpha2"},
    kind={"const": "JobSet"},
    metadata=METADATA,
    spec=an_object(
        ["replicatedJobs"],
        failurePolicy=FAILURE_POLICY,
        network=an_object(enableDNSHostnames={"type": "boolean"}, subdomain=NAME,
                          publishNotReadyAddresses={"type": "boolean"}),
        replicatedJobs=REPLICATED_JOBS,
        suspend={"type": "boolean"}))

LEADERWORKERSET = an_object(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "leaderworkerset.x-k8s.io/v1"},
    kind={"const": "LeaderWorkerSet"},
    metadata=METADATA,
    spec=an_object(
        ["leaderWorkerTemplate"],
        replicas=INTEGER,
        leaderWorkerTemplate=an_object(
            ["workerTemplate"], size={"type": "integer", "minimum": 1},
            restartPolicy={"enum": ["None", "RecreateGroupOnPodRestart"]},
            leaderTemplate=TEMPLATE, workerTemplate=TEMPLATE)))

CLUSTERTRAININGRUNTIME = an_object(
    ["apiVersion", "kind", "metadata", "spec"],
    apiVersion={"const": "trainer.kubeflow.org/v1alpha1"},
    kind={"const": "ClusterTrainingRuntime"},
    metadata=METADATA,
    spec=an_object(
        ["template"],
        mlPolicy=an_object(numNodes={"type": "integer", "minimum": 1},
                           torch=an_object(numProcPerNode={"type": ["integer", "string"]})),
        template=an_object(["spec"], metadata={"type": "object"},
                           spec=an_object(["replicatedJobs"], failurePolicy=FAILURE_POLICY,
                                          replicatedJobs=REPLICATED_JOBS))))

SCHEMAS = {"PyTorchJob": PYTORCHJOB, "TrainJob": TRAINJOB, "JobSet": JOBSET, "LeaderWorkerSet": LEADERWORKERSET,
           "ClusterTrainingRuntime": CLUSTERTRAININGRUNTIME}
