kubectl api-resources

kubectl api-resources -o wide

kubectl api-resources --namespaced=false --sort-by=name

kubectl api-resources --api-group=apps --verbs=list,watch -o name

kubectl api-resources --categories=all

kubectl api-versions

kubectl version -o yaml | sed -n '/serverVersion/,$p' | grep -E 'major|minor|platform'

kubectl cluster-info

kubectl get --raw /apis/apps/v1

kubectl get --raw /api | sed 's/"serverAddress":"[^"]*"//'

kubectl get --raw /apis/apps

kubectl get --raw /nothing

kubectl get componentstatuses --request-timeout=5s > /dev/null 2>&1; echo ended

kubectl get crd,apiservices
