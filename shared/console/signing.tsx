import type { JSX } from "hono/jsx/jsx-runtime";

// Who changes something, and why: the fields that each form of an operation has.

export interface Signature {
  who?: string;
  reason?: string;
}

export function signatureIn(form: URLSearchParams): Required<Signature> {
  return { who: form.get("who") ?? "", reason: form.get("reason") ?? "" };
}

interface SigningParts {
  caller: string; // empty if callers need no credential
  signature: Signature;
  why: string; // asks for the reason
  keptIn?: string;
}

export function Signing(
  { caller, signature, why, keptIn = "the log of operations" }: SigningParts,
): JSX.Element {
  return (
    <>
      {caller === "" ? <TextField id="who" label="Your name" value={signature.who} /> : (
        <p>
          You are signed in as <b>{caller}</b>.
        </p>
      )}
      <TextField id="reason" label={why} value={signature.reason} />
      <p class="muted">Your name and the reason are kept in {keptIn}.</p>
    </>
  );
}

function TextField(
  { id, label, value = "" }: { id: "who" | "reason"; label: string; value: string | undefined },
): JSX.Element {
  const autocomplete = id === "who" ? "username" : "off";
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        name={id}
        value={value}
        required
        maxlength={255}
        autocomplete={autocomplete}
      />
    </>
  );
}
