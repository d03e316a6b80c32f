import type { Settings } from '../catalog/model.ts';

/** One year: the least that lists of such hosts ask for. */
const hsts_lifetime_s = 31_536_000;

/** Strict-Transport-Security of a service at this public address; none unless that is https. */
export function transportSecurity(base_url: string, scope: Settings['hsts']): string | undefined {
  if (scope === 'off' || !base_url.startsWith('https://')) return undefined;
  return `max-age=${hsts_lifetime_s}${scope === 'subdomains' ? '; includeSubDomains' : ''}`;
}

/** The policy of every answer that has none of its own: what is no page loads and runs nothing, and stands in no frame. */
export const closed_policy = "default-src 'none'; base-uri 'none'; frame-ancestors 'none'";

/** Features of browsers that pages do not use, so that no script in one can. Copying and full screen stay. */
const unused_features = [
  'accelerometer',
  'camera',
  'display-capture',
  'geolocation',
  'gyroscope',
  'hid',
  'idle-detection',
  'magnetometer',
  'microphone',
  'midi',
  'payment',
  'screen-wake-lock',
  'serial',
  'usb',
  'xr-spatial-tracking',
];

/** The policy of the dashboard: its playground records, and nothing in a frame of it does. */
export const recording_policy = unused_features
  .map((feature) => `${feature}=${feature === 'microphone' ? '(self)' : '()'}`)
  .join(', ');

/** Headers of every HTML page, in addition to its own. */
export const page_headers = {
  'content-type': 'text/html; charset=utf-8',
  'permissions-policy': unused_features.map((feature) => `${feature}=()`).join(', '),
  'cross-origin-opener-policy': 'same-origin',
} as const;
