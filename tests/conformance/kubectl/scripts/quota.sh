kubectl wait --for=create configmap/kube-root-ca.crt --timeout=20s; kubectl create quota few --hard=configmaps=2,requests.cpu=1,pods=2,services.nodeports=1

kubectl wait --for=jsonpath='{.status.used.configmaps}'=1 quota/few --timeout=20s

kubectl create configmap one

kubectl create configmap two

kubectl create configmap two --dry-run=server

kubectl create -f pod.yaml

kubectl run plain --image=busybox

kubectl create service nodeport web --tcp=80

kubectl create service nodeport more --tcp=80

kubectl wait --for=jsonpath='{.status.used.requests\.cpu}'=100m quota/few --timeout=20s

kubectl wait --for=jsonpath='{.status.used.services\.nodeports}'=1 quota/few --timeout=20s

kubectl get quota

kubectl describe quota few

kubectl delete pod lonely; kubectl wait --for=jsonpath='{.status.used.pods}'=0 quota/few --timeout=20s
