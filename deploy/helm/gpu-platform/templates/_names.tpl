{{- define "gpu-platform.labels" -}}
app.kubernetes.io/name: gpu-platform
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "gpu-platform.selector" -}}
app.kubernetes.io/name: gpu-platform
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpu-platform.journal" -}}
{{ .Values.journal.existingClaim | default (printf "%s-journal" .Release.Name) }}
{{- end -}}

{{/* The configuration file: the values' config, over the addresses and the certificate of the Service. */}}
{{- define "gpu-platform.config" -}}
{{- $listener := dict -}}
{{- if .Values.api.tlsSecret -}}
{{- $listener = dict "api" (dict
      "rest" (dict "address" "0.0.0.0:8443")
      "grpc" (dict "address" "0.0.0.0:8444")
      "tls" (dict "certificate" "/etc/gpu-platform-tls/tls.crt" "key" "/etc/gpu-platform-tls/tls.key")) -}}
{{- end -}}
{{- $config := mergeOverwrite $listener (deepCopy .Values.config) -}}
{{- if $config }}{{ toYaml $config }}{{ end -}}
{{- end -}}
