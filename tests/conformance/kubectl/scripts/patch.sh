kubectl create -f settings.yaml -f web.yaml

kubectl patch configmap settings -p '{"data":{"size":null,"shape":"round"}}' -o yaml

kubectl patch configmap settings --type=merge -p '{"data":{"size":"small"}}'

kubectl patch configmap settings --type=merge -p '{"data":{"size":"small"}}'

kubectl patch configmap settings --type=json -p '[{"op":"replace","path":"/data/size","value":"tiny"}]'

kubectl patch configmap settings --type=json -p '[{"op":"test","path":"/data/size","value":"huge"}]'

kubectl patch configmap settings --type=json -p '[{"op":"remove","path":"/data/none"}]'

kubectl patch configmap settings --type=json -p '{"op":"remove"}'

kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"sidecar","image":"envoy"}]}}}}'

kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"server","$patch":"delete"}]}}}}'

kubectl get deployment web -o yaml

kubectl patch deployment web -p '{"spec":{"replicas":"many"}}'

kubectl patch deployment web -p '{"spec":{"replicas":-1}}'

kubectl patch deployment web -p '{"spec":{"selector":{"matchLabels":{"app":"x"}}}}'

kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"replicas":2}}'

kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":7}}' -o yaml

kubectl patch deployment web -p '{"spec":{"replicas":1}}' --dry-run=server -o jsonpath='{.spec.replicas}'

kubectl patch deployment web --type=merge -p '{"spec":{"nothing":1}}'

kubectl patch deployment none -p '{}'

kubectl patch -f settings.yaml -p '{"data":{"colour":"gold"}}'
