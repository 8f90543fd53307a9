import type { ClosedReason } from '../session.ts';

/** Shown while ADMIN_TOKEN is not set or refused: the dashboard is closed. Says how to set it where this Headgate runs. */
export function ClosedPage({ detail, command, afterwards, fault }: ClosedReason) {
  return (
    <main class="gate">
      <h1>Headgate</h1>
      {command === undefined ? (
        <p>{detail}</p>
      ) : (
        <>
          <p>
            The secret <code>ADMIN_TOKEN</code> {fault}, so the dashboard is closed. Set it:
          </p>
          <pre>{command}</pre>
          <p>{afterwards}</p>
        </>
      )}
      <p>
        Any long random text will do, as <code>openssl rand -hex 32</code> makes it. Calls pass
        meanwhile; only the admin routes and this page are closed.
      </p>
    </main>
  );
}
