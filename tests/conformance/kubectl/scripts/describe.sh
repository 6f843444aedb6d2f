kubectl create -f web.yaml -f several.yaml -f pod.yaml -f settings.yaml -f family.yaml

kubectl create -f - <<END
apiVersion: v1
kind: Event
metadata: {name: lonely.1}
involvedObject: {apiVersion: v1, kind: Pod, name: lonely, namespace: describe, uid: $(kubectl get pod lonely -o jsonpath='{.metadata.uid}')}
type: Warning
reason: Sad
message: Nobody is here.
source: {component: test}
count: 3
firstTimestamp: $(date -u +%Y-%m-%dT%H:%M:%SZ)
lastTimestamp: $(date -u +%Y-%m-%dT%H:%M:%SZ)
END

kubectl describe pod lonely

kubectl describe deployment web

kubectl describe service web

kubectl describe statefulset,daemonset,job,cronjob

kubectl describe ingress,networkpolicy,pdb,pvc,resourcequota

kubectl describe hpa elastic

kubectl describe configmap settings

kubectl describe secret secret

kubectl describe lease,role,rolebinding

kubectl describe namespace describe

kubectl describe serviceaccount default

kubectl describe pod none

kubectl describe clusterrole cluster-admin

kubectl describe node none
