kubectl apply -f web.yaml -f several.yaml

kubectl apply -f web.yaml -f several.yaml

kubectl get deployment web -o yaml --show-managed-fields

kubectl get service/web statefulset/db daemonset/agent job/once cronjob/nightly ingress/front -o yaml

kubectl wait --for=jsonpath='{.status.used}' resourcequota/frugal --timeout=20s

kubectl get networkpolicy,pdb,hpa,pvc,resourcequota,lease,role,rolebinding

kubectl get networkpolicy,pdb,hpa,pvc,lease,role,rolebinding -o yaml

kubectl get service,statefulset,daemonset,job,cronjob,ingress,hpa,pvc -o wide

sed 's/nginx:1/nginx:2/; s/{name: A, value: "1"}/{name: B, value: "2"}/' web.yaml | kubectl apply -f - -o yaml

sed 's/replicas: 2/replicas: 2\n  paused: true/' web.yaml | kubectl apply -f - --dry-run=server

kubectl get deployment web -o jsonpath='{.spec.paused} {.spec.template.spec.containers[0].env}'

kubectl apply view-last-applied deployment web

kubectl create configmap bare

kubectl apply -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: bare}
data: {a: b}
END

kubectl apply set-last-applied -f settings.yaml

kubectl apply set-last-applied -f settings.yaml --create-annotation

kubectl apply -f settings.yaml --prune -l tier=front

sed 's/app: web}/app: other}/' web.yaml | kubectl apply -f -

kubectl apply -f - <<END
apiVersion: v1
kind: Service
metadata: {name: web}
spec: {clusterIP: None, ports: [{name: http, port: 80}]}
END

kubectl apply -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: strict}
unknown: 1
END
