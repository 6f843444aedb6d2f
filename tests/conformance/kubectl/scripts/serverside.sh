kubectl apply --server-side -f web.yaml

kubectl apply --server-side -f web.yaml

kubectl get deployment web -o yaml --show-managed-fields

kubectl apply --server-side --field-manager=other -f web.yaml

sed 's/replicas: 2/replicas: 3/; s/nginx:1/nginx:2/' web.yaml | kubectl apply --server-side --field-manager=third -f -

sed 's/replicas: 2/replicas: 3/' web.yaml | kubectl apply --server-side --field-manager=third --force-conflicts -f -

kubectl scale deployment web --replicas=4

kubectl apply --server-side -f web.yaml

kubectl get deployment web -o yaml --show-managed-fields

kubectl apply --server-side --dry-run=server --force-conflicts -f web.yaml -o yaml

kubectl apply -f settings.yaml

kubectl apply --server-side -f settings.yaml

kubectl get configmap settings -o yaml --show-managed-fields

sed '/size/d' settings.yaml | kubectl apply --server-side -f - -o yaml --show-managed-fields

kubectl apply --server-side --force-conflicts --dry-run=client -f settings.yaml

kubectl apply --server-side -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: fresh, resourceVersion: "1"}
data: {a: b}
END

kubectl apply --server-side -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: fresh}
dta: {a: b}
END
