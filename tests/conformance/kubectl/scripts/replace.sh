kubectl replace -f settings.yaml

kubectl create -f settings.yaml

sed 's/blue/green/' settings.yaml | kubectl replace -f - -o yaml

kubectl get configmap settings -o yaml | sed 's/green/black/; s/resourceVersion: .*/resourceVersion: "1"/' | kubectl replace -f -

kubectl replace --force -f settings.yaml

kubectl create -f web.yaml

sed 's/app: web}/app: other}/' web.yaml | kubectl replace -f -

sed 's/nginx:1/nginx:2/' web.yaml | kubectl replace -f -

sed 's/nginx:1/nginx:3/' web.yaml | kubectl replace --dry-run=server -f - -o jsonpath='{.metadata.generation} {..image}'

kubectl get deployment web -o jsonpath='{.metadata.generation} {..image}'

kubectl create -f pod.yaml

sed 's/busybox/alpine/; s/sleep/wait/' pod.yaml | kubectl replace -f - 2>&1 | head -n 1
