import type { Delivery, DeliveryAttempt } from '../webhooks/delivery.ts';
import type { DeliveryAttemptView, DeliveryView } from './views/activity.ts';

export function renderDelivery(delivery: Delivery): DeliveryView {
  const { id, event, url, state, attempts, task_id, endpoint_id, event_id } = delivery;
  const is_of_nothing = task_id === null && event_id === null;
  return {
    id,
    event,
    url,
    state: state === 'waiting' && attempts > 0 ? 'retrying' : state,
    attempts,
    next_at: delivery.next_at?.toISOString() ?? null,
    created_at: delivery.created_at.toISOString(),
    task_id,
    endpoint_id,
    is_test: is_of_nothing && (event === 'alert.test' || !event.startsWith('alert.')),
  };
}

export function renderAttempt({
  number,
  started_at,
  duration_ms,
  status,
  error,
  answer,
}: DeliveryAttempt): DeliveryAttemptView {
  return { number, started_at: started_at.toISOString(), duration_ms, status, error, answer };
}
