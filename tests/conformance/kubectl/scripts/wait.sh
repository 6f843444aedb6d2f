kubectl create -f web.yaml -f pod.yaml -f settings.yaml

kubectl wait --for=condition=Available deployment/web --timeout=1s

kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"conditions":[{"type":"Available","status":"True","reason":"Test","message":"Ready."}]}}'

kubectl wait --for=condition=Available deployment/web --timeout=5s

kubectl wait --for=condition=Available=False deployment/web --timeout=1s

(sleep 0.5; kubectl patch pod lonely --subresource=status -p '{"status":{"phase":"Running"}}') > "$SCRATCH/other" &
kubectl wait --for=jsonpath='{.status.phase}'=Running pod/lonely --timeout=10s; wait

kubectl wait --for=jsonpath='{.data.colour}' configmap/settings --timeout=5s

kubectl wait --for=jsonpath='{.data.none}'=x configmap/settings --timeout=1s

(sleep 0.5; kubectl create configmap late) > "$SCRATCH/other" &
kubectl wait --for=create configmap/late --timeout=10s; wait

kubectl wait --for=create configmap/never --timeout=1s

(sleep 0.5; kubectl delete configmap late) > "$SCRATCH/other" &
kubectl wait --for=delete configmap/late --timeout=10s; wait

kubectl wait --for=delete configmap/settings --timeout=1s

kubectl wait --for=delete configmap/never --timeout=1s

kubectl wait --for=condition=Ready pod -l app=none --timeout=1s

kubectl wait --for=condition=Ready pod/none --timeout=1s
