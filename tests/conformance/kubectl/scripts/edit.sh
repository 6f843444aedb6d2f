kubectl create -f settings.yaml -f web.yaml

EDITOR='sed -i s/blue/yellow/' kubectl edit configmap settings

kubectl get configmap settings -o yaml

EDITOR=true kubectl edit configmap settings

EDITOR='sed -i s/replicas:.2/replicas:.5/' kubectl edit deployment web -o yaml

EDITOR='sed -i s/nginx:1/nginx:2/' kubectl edit deployment web --output-patch

EDITOR='sed -i /available/,$d' kubectl edit deployment web --subresource=status

EDITOR='sed -i s/name:.web/name:.other/' kubectl edit deployment web

kubectl set image deployment/web server=nginx:3

kubectl set env deployment/web B=2

kubectl set resources deployment web --limits=cpu=200m

kubectl set serviceaccount deployment web robot

kubectl get deployment web -o yaml
