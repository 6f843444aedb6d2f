export KUBECTL_EXTERNAL_DIFF='diff -u --label before --label after'; kubectl diff -f settings.yaml -f web.yaml

kubectl apply -f settings.yaml -f web.yaml

kubectl diff -f settings.yaml -f web.yaml

export KUBECTL_EXTERNAL_DIFF='diff -r -u --label before --label after'; sed 's/replicas: 2/replicas: 3/; s/nginx:1/nginx:2/' web.yaml | kubectl diff -f -

export KUBECTL_EXTERNAL_DIFF='diff -r -u --label before --label after'; sed 's/blue/red/' settings.yaml | kubectl diff --server-side --force-conflicts --show-managed-fields -f -

export KUBECTL_EXTERNAL_DIFF='diff -r -u --label before --label after'; sed 's/blue/red/' settings.yaml | kubectl diff --server-side -f -

kubectl get deployment web -o jsonpath='{.metadata.generation} {.spec.replicas}'
