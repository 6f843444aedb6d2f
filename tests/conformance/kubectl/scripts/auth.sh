kubectl auth can-i create pods

kubectl auth can-i '*' '*' --all-namespaces

kubectl auth can-i get pods --as=alice

kubectl create role reader --verb=get,list --resource=configmaps

kubectl create rolebinding reader --role=reader --user=alice --group=readers

kubectl auth can-i list configmaps --as=alice

kubectl auth can-i list configmaps --as=bob --as-group=readers

kubectl auth can-i list configmaps --as=alice -n default

kubectl auth can-i delete configmaps --as=alice

kubectl auth can-i get /healthz --as=alice

kubectl auth can-i --list --as=alice

kubectl get configmaps --as=alice -o name

kubectl get secrets --as=alice

kubectl create configmap mine --as=alice

kubectl delete configmap none --as=alice

kubectl get nodes --as=system:serviceaccount:auth:default

kubectl get pods -A --as=alice

kubectl auth whoami --as=alice --as-group=readers -o yaml

kubectl auth can-i get nothings

kubectl auth reconcile -f several.yaml --dry-run=server
