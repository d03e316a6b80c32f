/** The path below which this service is on its host, such as `/medley`, or nothing: the page tells. */
export const own_path = document.querySelector<HTMLMetaElement>('meta[name="own-path"]')?.content ?? '';

/** A path of this service (`/docs`, `/dash/…`, a page) as this browser has to ask for it. */
export function below(path: string): string {
  return own_path + path;
}
