import { Alert, Button, Stack } from '@mantine/core';
import { useMutation, useQuery } from '@tanstack/react-query';
import type { SignInView } from '../../../src/dashboard/views/common.ts';
import { api } from '../api.ts';
import { Failed } from './states.tsx';

/** The ways in that this service has. */
export function useWaysIn() {
  return useQuery({
    queryKey: ['ways-in'],
    queryFn: ({ signal }) => api.get<SignInView>('/dash/sign-in', { signal }),
    staleTime: 60_000,
  });
}

/** A sign-in by an issuer that leads to `next`; or, for somebody who is here, a connection with it. */
export type IssuerPurpose = { next: string; fresh?: boolean } | 'link';

/** Leads the browser to the issuer, which sends it back. */
export function useIssuer(purpose: IssuerPurpose) {
  return useMutation({
    mutationFn: (issuer: string) =>
      purpose === 'link'
        ? api.post<{ url: string }>('/auth/issuer/link', { issuer })
        : api.post<{ url: string }>('/auth/issuer/start', { issuer, ...purpose }),
    onSuccess: ({ url }) => location.assign(url),
  });
}

/** A button for each issuer. */
export function IssuerButtons({
  issuers,
  purpose,
  word,
}: {
  issuers: SignInView['issuers'];
  purpose: IssuerPurpose;
  /** The words in front of the name: `Sign in with`. */
  word: string;
}) {
  const { mutate, error, isPending, variables } = useIssuer(purpose);
  return (
    <Stack gap="xs">
      {issuers.map(({ id, name }) => (
        <Button key={id} variant="default" loading={isPending && variables === id} onClick={() => mutate(id)}>
          {word} {name}
        </Button>
      ))}
      {error && <Failed error={error} />}
    </Stack>
  );
}

/** The reason why somebody did not get in by an issuer, which is in the address of the page. */
export function IssuerProblem({ issuers }: { issuers: SignInView['issuers'] }) {
  const search = new URLSearchParams(location.search);
  const problem = search.get('problem');
  if (problem === null) return null;
  const name = issuers.find(({ id }) => id === search.get('issuer'))?.name ?? 'The other service';
  return (
    <Alert role="alert" color="red" variant="light">
      {problemText(problem, name)}
    </Alert>
  );
}

function problemText(problem: string, name: string): string {
  const connect = `Sign in as before, then connect ${name} in Settings, Security.`;
  switch (problem) {
    case 'away':
      return 'This service cannot reach its database at the moment. Try again shortly.';
    case 'clock':
      return `The clocks of ${name} and of this service differ by minutes. Tell the operator of this service.`;
    case 'denied':
      return `You cancelled at ${name}. Nothing has changed.`;
    case 'email_domain':
      return `${name} names an e-mail address that is not allowed here. Choose another account there.`;
    case 'email_known':
      return `Somebody here has your e-mail address without a proof. If it was you: ${connect} If not, ask the operator of this service.`;
    case 'email_missing':
      return `${name} names no e-mail address of yours. Add one there, or sign in another way.`;
    case 'email_unproved':
      return `${name} does not say that your e-mail address is proved. Prove it there. Or, if you have been here before: ${connect}`;
    case 'expired':
      return 'This sign-in took longer than 10 minutes, was used already, or was begun in another browser. Try again.';
    case 'linked_elsewhere':
      return `Your account at ${name} signs in somebody else here. Disconnect it there first.`;
    case 'not_fresh':
      return `${name} did not ask for your password again. Sign out there, then try again.`;
    case 'too_many':
      return 'Too many attempts. Wait a minute, then try again.';
    case 'unknown_person':
      return `Nobody here has your account at ${name}. Ask an owner of an account for an invitation.`;
    case 'unreachable':
      return `${name} does not answer. Try again in a minute. If it stays so, tell the operator of this service.`;
    default:
      return `This service does not trust the answer of ${name}. Try again. If it stays so, tell the operator of this service.`;
  }
}
