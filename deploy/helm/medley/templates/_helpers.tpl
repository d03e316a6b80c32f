{{- define "medley.labels" -}}
app.kubernetes.io/name: medley
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}

{{- define "medley.selector" -}}
app.kubernetes.io/name: medley
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end }}

{{- define "medley.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end }}

{{/* The configuration of hooks has a name of its own: it is there before that of the release. */}}
{{- define "medley.pod" -}}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{ toYaml . | nindent 2 }}
{{- end }}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.nodeSelector }}
nodeSelector: {{ toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{ toYaml . | nindent 2 }}
{{- end }}
volumes:
  - name: data
    emptyDir: { sizeLimit: {{ .root.Values.data.size }} }
  - name: config
    configMap: { name: {{ .config }} }
{{- end }}

{{- define "medley.container" -}}
image: {{ include "medley.image" .root }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  readOnlyRootFilesystem: true
  allowPrivilegeEscalation: false
  capabilities: { drop: [ALL] }
envFrom:
  - secretRef: { name: {{ .root.Values.existingSecret }} }
env:
  - { name: MEDLEY_CONFIG, value: /etc/medley/medley.yaml }
  - { name: MEDLEY_BASE_URL, value: {{ .root.Values.baseUrl | quote }} }
  - { name: MEDLEY_METRICS, value: "0.0.0.0:{{ .root.Values.metrics.port }}" }
  {{- range $name, $value := .root.Values.env }}
  - { name: {{ $name }}, value: {{ $value | quote }} }
  {{- end }}
  {{- if .role }}
  - { name: MEDLEY_ROLE, value: {{ .role }} }
  {{- end }}
volumeMounts:
  - { name: data, mountPath: /data }
  - { name: config, mountPath: /etc/medley, readOnly: true }
{{- end }}
