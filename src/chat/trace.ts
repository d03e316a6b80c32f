import type { ContentCopy } from '../contents/content-log.ts';
import { inSpan, type Attributes, type Span } from '../tracing/tracer.ts';
import type { AttemptResult } from './attempt-result.ts';
import type { ChatOutcome } from './outcome.ts';
import type { PricedRequest } from './priced-request.ts';
import type { NamedRoute } from './routes.ts';

/**
 * Asks a route in a span of its own. Names of attributes: OpenTelemetry's conventions for generative AI
 * (github.com/open-telemetry/semantic-conventions-genai, read 2026-11-27); what they lack begins with `medley.`.
 */
export function traceAttempt(
  priced: PricedRequest,
  { name, route }: NamedRoute,
  { outcome, content }: { outcome: ChatOutcome; content: ContentCopy | undefined },
  attempt: () => Promise<AttemptResult>,
): Promise<AttemptResult> {
  const { kind } = priced.model;
  const operation = kind === 'embedding' ? 'embeddings' : kind;
  const options = {
    name: `${operation} ${route.upstream_model}`,
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': operation,
      'gen_ai.provider.name': route.provider,
      'gen_ai.request.model': route.upstream_model,
      'gen_ai.request.stream': priced.request.stream,
      'medley.model': priced.model.id,
      'medley.route': name,
    },
  } as const;
  return inSpan(options, async (span) => {
    const attempted = await attempt();
    if (span) note(span, attempted, outcome);
    if (span && attempted.answered) content?.trace(span);
    return attempted;
  });
}

function note(span: Span, attempted: AttemptResult, outcome: ChatOutcome): void {
  if (!attempted.answered) return void span.fail(attempted.failure.cause);
  span.set(resultsOf(outcome));
  if (outcome.error) span.fail(outcome.error.type);
}

function resultsOf({ usage, finish, upstream_id, first_content_ms }: ChatOutcome): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage?.input_tokens,
    'gen_ai.usage.output_tokens': usage?.output_tokens,
    'gen_ai.response.id': upstream_id,
    'gen_ai.response.finish_reasons': finish === undefined ? undefined : [finish],
    'gen_ai.response.time_to_first_chunk': first_content_ms === undefined ? undefined : first_content_ms / 1000,
  };
}
