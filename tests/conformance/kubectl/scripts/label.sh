kubectl create -f settings.yaml -f family.yaml

kubectl label configmap settings owner=me

kubectl label configmap settings owner=you

kubectl label configmap settings owner=you --overwrite

kubectl label configmap settings owner=you

kubectl label configmap settings owner-

kubectl label configmap settings owner-

kubectl label configmaps --all all=yes

kubectl label configmap settings bad='not a value!'

kubectl label configmap settings 'bad key=a'

kubectl label configmap settings owner=us --resource-version=1

kubectl label configmap settings dry=yes --dry-run=server --show-labels=false

kubectl label configmaps -l tier=front seen=yes

kubectl label configmap settings --list | sort

kubectl annotate configmap settings note='any text at all, really!'

kubectl annotate configmap settings note=other

kubectl annotate configmap settings note=other --overwrite -o yaml

kubectl annotate configmap settings note-

kubectl annotate configmap settings 'a/b/c=1'

kubectl annotate configmap none note=1
