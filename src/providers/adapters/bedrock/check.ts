import type { OptionProblem } from '../../../catalog/check-settings.ts';
import type { ProviderEntry } from '../../../catalog/schema.ts';

/** Checks a provider of Bedrock: its address follows from a region, or stands in the file. */
export function bedrockProblems({ base_url, credentials }: ProviderEntry): OptionProblem[] {
  if (base_url !== undefined || credentials?.aws !== undefined) return [];
  const message = 'is required without credentials of AWS, such as https://bedrock-runtime.eu-central-1.amazonaws.com.';
  return [{ field: 'base_url', message }];
}
