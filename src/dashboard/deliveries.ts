import type { Delivery, DeliveryAttempt } from '../webhooks/delivery.ts';
import type { DeliveryAttemptView, DeliveryView } from './views/activity.ts';

export function renderDelivery(delivery: Delivery): DeliveryView {
  const { id, event, url, state, attempts, task_id } = delivery;
  return {
    id,
    event,
    url,
    state: state === 'waiting' && attempts > 0 ? 'retrying' : state,
    attempts,
    next_at: delivery.next_at?.toISOString() ?? null,
    created_at: delivery.created_at.toISOString(),
    task_id,
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
