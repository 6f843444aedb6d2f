kubectl create -f settings.yaml -o yaml

kubectl create -f settings.yaml

kubectl create configmap literal --from-literal=a=1 --from-file=settings.yaml -o yaml

kubectl create secret generic login --from-literal=password=swordfish -o yaml

kubectl create deployment app --image=nginx --replicas=3 --port=80 -o yaml

kubectl create service clusterip app --tcp=80:8080 -o yaml

kubectl create service nodeport app-np --tcp=80 --node-port=30123

kubectl create job once --image=busybox -- true

kubectl create cronjob each --image=busybox --schedule='* * * * *' -o yaml -- true

kubectl create job by-hand --from=cronjob/each

kubectl create serviceaccount robot -o yaml

kubectl create token robot | cut -c 1-3

kubectl create role reader --verb=get,list --resource=configmaps,deployments.apps -o yaml

kubectl create rolebinding reader --role=reader --serviceaccount=create:robot -o yaml

kubectl create quota frugal --hard=pods=3

kubectl create ingress front --rule='example.com/=app:80' -o yaml

kubectl create poddisruptionbudget careful --selector=app=app --min-available=1 -o yaml

kubectl create -f settings.yaml --dry-run=server

kubectl create configmap dry --from-literal=a=1 --dry-run=server -o yaml

kubectl get configmap dry

kubectl run shell --image=busybox --restart=Never -o yaml

kubectl expose deployment app --name=exposed --port=80 -o yaml

kubectl autoscale deployment app --min=1 --max=3 --cpu=80% -o yaml

kubectl create -f - <<END
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "gen-"}, "data": {"a": 1}}
END

kubectl create -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: wrong, colour: red}
data: {}
dat: {}
END

kubectl create --validate=warn -f - <<END
apiVersion: v1
kind: ConfigMap
metadata: {name: warned, colour: red}
dat: {}
END

kubectl create --validate=false -f - <<END
apiVersion: apps/v1
kind: Deployment
metadata: {name: Bad_Name}
spec: {replicas: -1, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: c}}, spec: {containers: [{}]}}}
END

kubectl create -f - <<END
apiVersion: none.example.com/v1
kind: Nothing
metadata: {name: a}
END

kubectl create namespace Create

kubectl create namespace create
