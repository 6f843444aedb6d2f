kubectl create -f settings.yaml -f family.yaml -f web.yaml -f several.yaml -f pod.yaml

kubectl delete configmap settings

kubectl delete configmap settings

kubectl delete configmap settings --ignore-not-found

kubectl delete configmap parent -o name

kubectl delete secret secret --dry-run=server

kubectl delete -f family.yaml --wait=false

kubectl delete deployment web --cascade=foreground

kubectl delete statefulset db --cascade=orphan

kubectl delete pod lonely

kubectl delete pod lonely --now

kubectl delete job,cronjob --all

kubectl delete all -l app=none

kubectl delete ingress/front service/web

kubectl delete pod none --grace-period=0 --force

kubectl delete nothing none

kubectl create configmap owner; kubectl create -f - <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: owner, uid: $(kubectl get configmap owner -o jsonpath='{.metadata.uid}'), blockOwnerDeletion: true}
END

kubectl delete configmap owner --cascade=foreground; kubectl get configmaps -o name

kubectl create configmap owner; kubectl create -f - <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: owner, uid: $(kubectl get configmap owner -o jsonpath='{.metadata.uid}')}
END

kubectl delete configmap owner; kubectl wait --for=delete configmap/child --timeout=20s; kubectl get configmaps -o name

kubectl create configmap owner; kubectl create -f - <<END
apiVersion: v1
kind: ConfigMap
metadata:
  name: child
  ownerReferences:
  - {apiVersion: v1, kind: ConfigMap, name: owner, uid: $(kubectl get configmap owner -o jsonpath='{.metadata.uid}')}
END

kubectl delete configmap owner --cascade=orphan; kubectl get configmap child -o yaml

kubectl patch configmap child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'

kubectl delete configmap child --timeout=1s

kubectl get configmap child -o yaml

kubectl patch configmap child --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'

kubectl patch configmap child --type=merge -p '{"metadata":{"finalizers":null}}'

kubectl get configmap child

kubectl delete --raw /api/v1/namespaces/delete/configmaps/none

kubectl delete namespace default

kubectl create namespace delete-more; kubectl create configmap held -n delete-more

kubectl delete namespace delete-more

kubectl get namespace delete-more; kubectl get configmaps -n delete-more
