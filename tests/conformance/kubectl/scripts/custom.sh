kubectl apply -f widgets.yaml; kubectl wait --for=condition=Established crd/widgets.kubectl.example.com --timeout=20s

for attempt in $(seq 50); do kubectl apply -f round.yaml --dry-run=server > "$SCRATCH/applied" 2>&1 && break; sleep 0.2; done; cat "$SCRATCH/applied"

kubectl apply -f round.yaml

kubectl get widgets

kubectl get wd -o wide

kubectl get wd round -o yaml --show-managed-fields

kubectl get all

kubectl get crd widgets.kubectl.example.com -o yaml

sed 's/size: 3/size: 4/' round.yaml | kubectl apply -f -

sed 's/size: 3/size: 40/' round.yaml | kubectl apply -f -

sed 's/size: 3/colour: pink/' round.yaml | kubectl apply -f -

sed 's/size: 3/size: 3\n  shape: round/' round.yaml | kubectl apply -f -

sed 's/size: 3/size: 3\n  shape: round/' round.yaml | kubectl apply --validate=warn -f -

sed 's/name: round/name: other/; s/size: 3/size: text/' round.yaml | kubectl create -f -

sed 's/port: 80/port: 81/' round.yaml | kubectl apply --server-side -f -

sed 's/port: 80/port: 82/' round.yaml | kubectl apply --server-side --field-manager=other -f -

sed 's/port: 80/port: 82/' round.yaml | kubectl apply --server-side --field-manager=other --force-conflicts -f -

kubectl get wd round -o yaml --show-managed-fields

kubectl patch widget round -p '{"spec":{"size":2}}'

kubectl patch widget round --type=merge -p '{"spec":{"size":2}}'

kubectl patch widget round --type=json -p '[{"op":"add","path":"/spec/ports/-","value":{"name":"http","port":1}}]'

kubectl patch widget round --subresource=status --type=merge -p '{"status":{"size":2,"conditions":[{"type":"Ready","status":"True","observedGeneration":1}]}}'

kubectl wait --for=condition=Ready widget/round --timeout=1s

kubectl scale widget round --replicas=5

kubectl get widget round --subresource=scale -o yaml

kubectl label widget round a=b

EDITOR='sed -i s/size:.5/size:.6/' kubectl edit widget round

kubectl describe widget round

sed 's/size: 3/size: 7/' round.yaml | kubectl replace -f -

sed 's/size: 3/size: 8/' round.yaml | KUBECTL_EXTERNAL_DIFF='diff -r -u --label before --label after' kubectl diff -f -

kubectl api-resources --api-group=kubectl.example.com -o wide

kubectl get widgets -o custom-columns=NAME:.metadata.name,SIZE:.spec.size

kubectl get widgets -A --field-selector metadata.name=round

kubectl get widgets --field-selector spec.size=7

kubectl delete widget round

kubectl delete crd widgets.kubectl.example.com

kubectl get widgets
