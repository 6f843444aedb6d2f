kubectl create -f pod.yaml -f settings.yaml

for number in 1 2; do kubectl create -f - <<END
apiVersion: v1
kind: Event
metadata: {name: lonely.$number}
involvedObject: {apiVersion: v1, kind: Pod, name: lonely, namespace: events, uid: $(kubectl get pod lonely -o jsonpath='{.metadata.uid}')}
type: $([ $number = 1 ] && echo Normal || echo Warning)
reason: Reason$number
message: Message $number.
source: {component: test}
count: 3
firstTimestamp: 2026-01-01T0$number:00:00Z
lastTimestamp: 2026-01-01T0$number:00:00Z
END
done

kubectl create -f - <<END
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: settings.1}
regarding: {apiVersion: v1, kind: ConfigMap, name: settings, namespace: events}
type: Normal
action: Tested
reason: New
note: A new style event.
reportingController: example.com/test
reportingInstance: one
eventTime: "2026-01-01T00:00:00.000000Z"
END

kubectl events

kubectl events --for pod/lonely

kubectl events --types=Warning

kubectl events -o yaml

kubectl get events

kubectl get events -o wide

kubectl get events --field-selector reason=Reason2 -o yaml

kubectl get events.v1.events.k8s.io settings.1 -o yaml

kubectl get events.events.k8s.io

kubectl get events -A --field-selector involvedObject.kind=ConfigMap,involvedObject.name=settings

kubectl create -f - <<END
apiVersion: events.k8s.io/v1
kind: Event
metadata: {name: wrong}
regarding: {apiVersion: v1, kind: ConfigMap, name: settings, namespace: elsewhere}
type: Loud
END
