kubectl create -f web.yaml -f several.yaml

kubectl rollout status deployment/web --timeout=1s

kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"replicas":2,"updatedReplicas":2,"availableReplicas":1}}'

kubectl rollout status deployment/web --timeout=1s

(sleep 0.5; kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"availableReplicas":2,"readyReplicas":2}}') > "$SCRATCH/other" &
kubectl rollout status deployment/web --timeout=10s; wait

kubectl get deployment web -o wide

kubectl rollout history deployment/web

kubectl rollout pause deployment/web

kubectl rollout pause deployment/web

kubectl rollout resume deployment/web

kubectl rollout restart deployment/web

kubectl rollout undo deployment/web

kubectl rollout status statefulset/db --timeout=1s

kubectl rollout status daemonset/agent --timeout=1s

kubectl rollout history daemonset/agent
