/** The version before the paths, unless `base_url` ends with one, or leads to the models of Vertex AI. */
export function pathPrefix(base_url: string): string {
  return /\/(?:v\d+[a-z]*\d*|publishers\/google)\/*$/.test(new URL(base_url).pathname) ? '' : '/v1beta';
}

/** Tells whether `base_url` leads to the models of Vertex AI. */
export function isVertex(base_url: string): boolean {
  return /\/publishers\/google\/*$/.test(new URL(base_url).pathname);
}

/** A model may stand in the file as Google names it: `models/…`, `tunedModels/…`. */
export function modelPath(model: string): string {
  const path = model.includes('/') ? model : `models/${model}`;
  return path.split('/').map(encodeURIComponent).join('/');
}
