import { isObject, type Json, type JsonObject } from '../../../catalog/model.ts';
import type { Answer, Upstream } from '../../http/http.ts';
import { objectIn, objectsIn, textIn } from '../../http/reading.ts';
import { scrub } from '../../http/scrub.ts';
import { InputRefused, NotStarted, type RunState } from '../../provider.ts';
import type { Plan } from './plan.ts';
import { inputFieldOf } from './prompt.ts';

/**
 * Errors of ComfyUI, by execution.py (validate_prompt, PromptExecutor) and server.py of github.com/Comfy-Org/ComfyUI,
 * read 2026-11-27. A submit that is refused has `{ error, node_errors }`; a run that failed has messages in its history.
 */

/** Returns the error of a refused submit: about a field of the caller's, or about the workflow and its machine. */
export function refusalOf(upstream: Upstream, plan: Plan, answer: Answer): Error {
  const body = answer.status === 400 ? bodyOf(answer) : {};
  const reasons = [...nodeReasons(plan, objectIn(body, 'node_errors'))];
  const own = reasons.filter(({ input_field }) => input_field !== undefined);
  const texts = (own.length > 0 ? own : reasons).map(({ text }) => text);
  if (own.length > 0) return new InputRefused('invalid_request', scrub(texts.join('; '), upstream.secrets));
  const error = body['error'];
  const message = isObject(error) ? [textIn(error, 'message'), textIn(error, 'details')] : [];
  const words = texts.length > 0 ? texts : message.filter((text) => text !== undefined);
  if (words.length === 0) return upstream.refusal(answer);
  return new NotStarted(
    'refused',
    `the machine does not take the workflow: ${scrub(words.join('; '), upstream.secrets)}`,
  );
}

function bodyOf(answer: Answer): JsonObject {
  try {
    return answer.object();
  } catch {
    return {}; // HTML of a proxy, or nothing
  }
}

type Reason = { input_field: string | undefined; text: string };

const reasons_max = 8;

function nodeReasons(plan: Plan, node_errors: JsonObject): Reason[] {
  const reasons = Object.entries(node_errors).flatMap(([node, value]): Reason[] =>
    objectsIn(isObject(value) ? value : {}, 'errors').map((error) => reasonOf(plan, node, error)),
  );
  return reasons.slice(0, reasons_max);
}

function reasonOf(plan: Plan, node: string, error: JsonObject): Reason {
  const field = textIn(objectIn(error, 'extra_info'), 'input_name');
  const input_field = field === undefined ? undefined : inputFieldOf(plan, node, field);
  const message = textIn(error, 'message') ?? 'is not valid';
  const details = textIn(error, 'details') ?? '';
  // Details begin with the name of the node's field, which a caller does not know.
  const detail =
    input_field === undefined
      ? details
      : details.replace(new RegExp(String.raw`^${escaped(field ?? '')}(?:\s*[:,-]\s*|$)`), '');
  const name = input_field ?? `node ${node} (${plan.workflow.get(node)?.class_type ?? '?'})`;
  return { input_field, text: `${name}: ${message}${detail === '' ? '' : ` (${detail})`}` };
}

function escaped(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`);
}

/** Exceptions of a node that mean that its file is not what it should be. */
const unreadable =
  /UnidentifiedImageError|InvalidDataError|cannot identify image file|Invalid data found when processing input/;

/** Returns the end of a run by the `status` of its history, or undefined if it has succeeded. */
export function failureIn(
  upstream: Upstream,
  plan: Plan | undefined,
  status: JsonObject,
): (RunState & { phase: 'failed' }) | undefined {
  const messages = Array.isArray(status['messages']) ? status['messages'] : [];
  if (dataOf(messages, 'execution_interrupted')) {
    return { phase: 'failed', type: 'upstream_error', message: 'The run was stopped on its machine.' };
  }
  const error = dataOf(messages, 'execution_error');
  if (!error) return textIn(status, 'status_str') === 'error' ? upstream.failure({ code: 'error' }) : undefined;
  const node = String(error['node_id'] ?? '');
  const [code, message] = [textIn(error, 'exception_type') ?? '', (textIn(error, 'exception_message') ?? '').trim()];
  const input_field = plan && inputFieldOf(plan, node);
  if (input_field !== undefined && (unreadable.test(code) || unreadable.test(message))) {
    const words = `${input_field}: the file cannot be read.`;
    return {
      phase: 'failed',
      type: 'invalid_request',
      message: words,
      upstream_words: scrub(`${code}: ${message}`, upstream.secrets),
    };
  }
  const failure = upstream.failure({ code, message });
  const place = `node ${node} (${textIn(error, 'node_type') ?? '?'})`;
  return { ...failure, upstream_words: `${place}: ${failure.upstream_words ?? code}` };
}

/** The data of the last message of this kind. */
function dataOf(messages: readonly Json[], kind: string): JsonObject | undefined {
  const data = messages.findLast((message) => Array.isArray(message) && message[0] === kind);
  const [, value] = Array.isArray(data) ? data : [];
  return isObject(value) ? value : undefined;
}
