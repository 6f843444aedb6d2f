kubectl apply -f widgets.yaml; kubectl wait --for=condition=Established crd/widgets.kubectl.example.com --timeout=20s

kubectl explain pod | fields

kubectl explain deployment.spec | fields

kubectl explain deployment.spec.template.spec.containers.livenessProbe | fields

kubectl explain service.spec.ports | fields

kubectl explain configmap.data | fields

kubectl explain events | fields

kubectl explain hpa --api-version=autoscaling/v1 | fields

kubectl explain crd.spec.versions | fields

kubectl explain roles | fields

kubectl explain job.spec --recursive | fields

kubectl explain deployment.spec.strategy.type | fields

kubectl explain pod.spec.nothing

kubectl explain nothing

for attempt in $(seq 50); do kubectl explain widget > "$SCRATCH/explained" 2>&1 && break; sleep 0.2; done; cat "$SCRATCH/explained" | fields

kubectl explain widget.spec

kubectl explain widget.spec.size

kubectl explain wd.spec --recursive | fields

kubectl explain widget.status.conditions

kubectl explain widget.spec.options

kubectl explain widget --output=plaintext-openapiv2 | fields
