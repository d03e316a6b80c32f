import { Badge } from '@mantine/core';
import {
  ArrowPathIcon,
  CheckCircleIcon,
  ClockIcon,
  ExclamationCircleIcon,
  MinusCircleIcon,
} from '@heroicons/react/24/solid';
import type { ComponentType, SVGProps } from 'react';

type Look = { color: string; label: string; icon: ComponentType<SVGProps<SVGSVGElement>> };

const looks: Record<string, Look> = {
  queued: { color: 'gray', label: 'Queued', icon: ClockIcon },
  running: { color: 'blue', label: 'Running', icon: ArrowPathIcon },
  succeeded: { color: 'teal', label: 'Succeeded', icon: CheckCircleIcon },
  failed: { color: 'red', label: 'Failed', icon: ExclamationCircleIcon },
  pending: { color: 'gray', label: 'Pending', icon: ClockIcon },
  retrying: { color: 'yellow', label: 'Retrying', icon: ArrowPathIcon },
  delivered: { color: 'teal', label: 'Delivered', icon: CheckCircleIcon },
  dropped: { color: 'red', label: 'Dropped', icon: MinusCircleIcon },
  active: { color: 'teal', label: 'Active', icon: CheckCircleIcon },
  blocked: { color: 'red', label: 'Blocked', icon: MinusCircleIcon },
  available: { color: 'teal', label: 'Available', icon: CheckCircleIcon },
  degraded: { color: 'yellow', label: 'Degraded', icon: ExclamationCircleIcon },
  unavailable: { color: 'red', label: 'Unavailable', icon: MinusCircleIcon },
  good: { color: 'teal', label: 'Good', icon: CheckCircleIcon },
  warning: { color: 'yellow', label: 'Warning', icon: ExclamationCircleIcon },
  bad: { color: 'red', label: 'Bad', icon: MinusCircleIcon },
  used: { color: 'teal', label: 'In use', icon: CheckCircleIcon },
  paused: { color: 'yellow', label: 'Paused', icon: MinusCircleIcon },
  drained: { color: 'yellow', label: 'Drained', icon: MinusCircleIcon },
  present: { color: 'teal', label: 'Present', icon: CheckCircleIcon },
  not_needed: { color: 'gray', label: 'Not needed', icon: CheckCircleIcon },
  missing: { color: 'yellow', label: 'Missing', icon: MinusCircleIcon },
  ending: { color: 'gray', label: 'Rotated', icon: ClockIcon },
  expired: { color: 'gray', label: 'Expired', icon: ClockIcon },
  off: { color: 'gray', label: 'Off', icon: MinusCircleIcon },
  deleted: { color: 'gray', label: 'Deleted', icon: MinusCircleIcon },
};

/** A state: never colour alone. */
export function Status({ of, label }: { of: string; label?: string }) {
  const look = looks[of] ?? { color: 'gray', label: of, icon: ClockIcon };
  const { icon: Icon } = look;
  return (
    <Badge variant="light" color={look.color} tt="none" miw="max-content" leftSection={<Icon width={13} aria-hidden />}>
      {label ?? look.label}
    </Badge>
  );
}

/** The state of a chat call by the status of its answer; 499: its caller did not wait for it. */
export function CallStatus({ status }: { status: number }) {
  if (status < 400) return <Status of="succeeded" label="Answered" />;
  return status === 499 ? <Status of="off" label="Caller left" /> : <Status of="failed" />;
}
