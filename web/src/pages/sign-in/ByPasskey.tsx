import { Alert, Button, Stack } from '@mantine/core';
import { useMutation } from '@tanstack/react-query';
import { useEffect, useRef, useState } from 'react';
import { browserFillsPasskeys, cancelPasskey, isGivenUp, signInByPasskey } from '../../ui/passkeys.ts';
import { useArrive } from './arrive.ts';

/** A button, and, where the browser can, an offer in the field for the user name. */
export function ByPasskey() {
  const arrive = useArrive();
  const latest = useRef(arrive);
  const offer = useRef<Offer>(undefined);
  const [round, setRound] = useState(0);
  const [refusal, setRefusal] = useState<Error>();
  const press = useMutation({
    mutationFn: async () => {
      setRefusal(undefined);
      await offer.current?.end();
      await signInByPasskey();
    },
    onSuccess: arrive,
    onError: () => setRound((count) => count + 1), // the offer begins anew
  });
  useEffect(() => {
    latest.current = arrive;
  });
  useEffect(() => {
    const begun = offerPasskeys();
    offer.current = begun;
    begun.is_chosen.then((is_chosen) => (is_chosen ? latest.current() : undefined)).catch(setRefusal);
    return () => void begun.end();
  }, [round]);
  const error = press.error ?? refusal;
  return (
    <Stack gap="xs">
      <Button variant="default" loading={press.isPending} onClick={() => press.mutate()}>
        Sign in with a passkey
      </Button>
      {error && !isGivenUp(error) && (
        <Alert role="alert" color="red" variant="light">
          {error.message}
        </Alert>
      )}
    </Stack>
  );
}

/** A challenge ends after five minutes: a page that stays open asks for another one before. */
const offer_ms = 4 * 60_000;

type Offer = {
  /** True once somebody has signed in by it; false if it was ended, or this browser has no such thing. */
  is_chosen: Promise<boolean>;
  end(): Promise<void>;
};

function offerPasskeys(): Offer {
  let is_over = false;
  let is_waiting = false;
  const offerOnce = async (): Promise<boolean> => {
    const timer = setTimeout(() => void cancelPasskey(), offer_ms);
    is_waiting = true;
    try {
      await signInByPasskey({ isOver: () => is_over });
      return true;
    } catch (error) {
      if (isGivenUp(error)) return false;
      throw error;
    } finally {
      is_waiting = false;
      clearTimeout(timer);
    }
  };
  const offerUntilOver = async (): Promise<boolean> => {
    if (!(await browserFillsPasskeys())) return false;
    while (!is_over) if (await offerOnce()) return true;
    return false;
  };
  return {
    is_chosen: offerUntilOver(),
    end: async () => {
      is_over = true;
      if (is_waiting) await cancelPasskey();
    },
  };
}
