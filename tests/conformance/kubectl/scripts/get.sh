kubectl create -f web.yaml -f settings.yaml -f pod.yaml

kubectl get deployments,configmaps,pods

kubectl get deployment web -o wide

kubectl get pod lonely -o wide

kubectl get deployment web -o yaml

kubectl get deployment web -o json

kubectl get pod lonely -o yaml --show-managed-fields

kubectl get configmaps,deploy -o name

kubectl get pod lonely -o jsonpath='{.metadata.name} {.spec.containers[0].image}{"\n"}'

kubectl get configmaps -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}'

kubectl get configmaps -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour,NONE:.data.none

kubectl get configmaps -o go-template='{{range .items}}{{.metadata.name}};{{end}}'

kubectl get configmaps -A --field-selector metadata.name=settings

kubectl get configmaps -l tier=front

kubectl get configmaps -l 'tier in (front,back),!other' --show-labels

kubectl get configmaps -l tier!=front

kubectl get pods --field-selector status.phase=Pending,spec.nodeName=

kubectl get pods --field-selector spec.colour=red

kubectl get configmaps -L tier --no-headers

kubectl get configmaps --sort-by=.metadata.name

kubectl get configmap settings nothing

kubectl get configmap settings nothing --ignore-not-found -o name

kubectl get nothing

kubectl get all

kubectl get configmaps --chunk-size=1

kubectl get pods -n nowhere

kubectl get pods -l 'a=b=c'

kubectl get --raw /api/v1/namespaces/get/configmaps/settings | grep -o '"data":{[^}]*}'

kubectl get --raw /healthz

kubectl get -f settings.yaml -o yaml

kubectl get pod lonely --output-watch-events -w --request-timeout=1s
