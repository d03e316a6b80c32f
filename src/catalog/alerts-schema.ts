import { Type } from 'typebox';
import { count, httpUrl, secretText, section, text } from './schema-parts.ts';

function timeOfDay(description: string) {
  return Type.String({
    pattern: '^(?:[01][0-9]|2[0-3]):[0-5][0-9]$',
    errorMessage: 'must be a time of day in quotes, such as "22:00"',
    description,
  });
}

/** `alerts` of `medley.yaml`. */
export const alerts = section(
  {
    mail: Type.Optional(
      Type.Array(
        Type.String({
          pattern: '^[^\\s@<>]+@[^\\s@<>]+$',
          maxLength: 254,
          errorMessage: 'must be an address such as ops@example.com',
        }),
        { maxItems: 20, uniqueItems: true, description: 'Addresses. Default: the proved ones of all operators.' },
      ),
    ),
    webhook_url: Type.Optional(httpUrl({ description: 'Receives each alert as a signed webhook. It may be private.' })),
    webhook_secret: Type.Optional(
      secretText('env:NAME or file:/path of the secret that signs it: whsec_ and the base64 of 24 to 64 bytes.'),
    ),
    quiet_hours: Type.Optional(
      section(
        {
          from: timeOfDay('The beginning.'),
          to: timeOfDay('The end; before the beginning: of the next day.'),
          time_zone: Type.Optional(text({ description: 'Such as Europe/Warsaw.', default: 'UTC' })),
        },
        { description: 'Hours in which only critical alerts are sent. The others wait.' },
      ),
    ),
    per_hour_max: Type.Optional(count(20, { maximum: 1_000, description: 'Messages per hour, by each way.' })),
    disk_percent_min: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 99,
        default: 10,
        description: 'Free share of a disk below which it is an alert; below a third of it, a critical one.',
      }),
    ),
  },
  { description: 'Alerts to those who run the service.' },
);
