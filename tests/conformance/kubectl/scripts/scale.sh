kubectl create -f web.yaml -f several.yaml

kubectl scale deployment web --replicas=3

kubectl scale deployment web --replicas=3 --current-replicas=2

kubectl scale deployment web --replicas=1 --current-replicas=3

kubectl scale deployment,statefulset --all --replicas=0

kubectl scale statefulset db --replicas=5 -o yaml

kubectl scale --replicas=2 -f web.yaml --dry-run=server

kubectl scale job once --replicas=2

kubectl scale configmap none --replicas=2

kubectl get deployment,statefulset

kubectl get deployment web --subresource=scale -o yaml

kubectl get deployment web --subresource=status -o jsonpath='{.spec.replicas}'

kubectl get deployment web --subresource=scale
