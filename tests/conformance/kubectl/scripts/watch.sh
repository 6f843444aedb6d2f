watching 0 kubectl get configmaps -w --output-watch-events --field-selector metadata.name!=kube-root-ca.crt
kubectl create configmap probe --from-literal=a=1; printed 2
kubectl create -f settings.yaml
kubectl label configmap settings colour=red
kubectl delete configmap settings
watched 5

watching 0 kubectl get pods -w -l app=lonely -o name
kubectl create -f pod.yaml; printed 1
kubectl label pod lonely app=other --overwrite
kubectl label pod lonely app=lonely --overwrite
watched 3

watching 2 kubectl get pods -w -o wide
kubectl patch pod lonely --subresource status -p '{"status":{"phase":"Running","podIP":"10.1.2.3"}}'
watched 3

watching 0 kubectl get configmap probe -w -o jsonpath='{.data.a}{"\n"}'
printed 1
for value in 2 3 4; do kubectl patch configmap probe -p "{\"data\":{\"a\":\"$value\"}}"; done
watched 4
