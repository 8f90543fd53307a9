import type { ClosedReason } from '../session.ts';

/** Shown while ADMIN_TOKEN is not set or was rejected. Shows how to set it on this platform. */
export function ClosedPage({ detail, command, afterwards, fault }: ClosedReason) {
  return (
    <main class="gate">
      <h1>Headgate</h1>
      {command === undefined ? (
        <p>{detail}</p>
      ) : (
        <>
          <p>
            The dashboard is disabled, because the secret <code>ADMIN_TOKEN</code> {fault}. Set it:
          </p>
          <pre>{command}</pre>
          <p>{afterwards}</p>
        </>
      )}
      <p>
        Use a long random value, for example from <code>openssl rand -hex 32</code>. Calls still
        work. Only the admin API and this page are disabled.
      </p>
    </main>
  );
}
