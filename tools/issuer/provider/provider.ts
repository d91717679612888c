// The OpenID provider itself, from npm: one client, the gateway, which every user has allowed already.
import Provider, { interactionPolicy } from "oidc-provider";
import type { Claims, Options } from "../faults.ts";
import { algorithm, type Key } from "./keys.ts";
import { Memory } from "./memory.ts";
import { endPage, errorPage, logoutPage } from "./pages.ts";
import { claimsOf } from "./users.ts";

export interface Made extends Options {
  issuer: string;
  key: Key;
  users: Record<string, Claims>;
}

const scope = "openid email profile";
const cookieKeys = [crypto.randomUUID()];

export function makeProvider(made: Made): Provider {
  const { issuer, key, users } = made;
  return new Provider(issuer, {
    adapter: Memory,
    clients: [clientOf(made)],
    jwks: { keys: [key.jwk] },
    enabledJWA: { idTokenSigningAlgValues: [algorithm] },
    cookies: { keys: cookieKeys },
    pkce: { required: () => true },
    claims: {
      openid: ["sub"],
      email: ["email", "email_verified"],
      profile: ["name", "picture", "locale"],
    },
    conformIdTokenClaims: false, // the claims are in the ID token, as with most providers
    features: {
      devInteractions: { enabled: false },
      backchannelLogout: { enabled: true },
      rpInitiatedLogout: {
        enabled: true,
        logoutSource: (context: Answered, form: string) => show(context, logoutPage(form)),
        postLogoutSuccessSource: (context: Answered) => show(context, endPage()),
      },
    },
    findAccount: (_: unknown, user: string) => ({
      accountId: user,
      claims: () => claimsOf(user, users),
    }),
    interactions: {
      policy: withoutConsent(),
      url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}`,
    },
    loadExistingGrant: allowed,
    renderError: (context: Answered) => show(context, errorPage()),
    // Its own one would refuse the loopback.
    fetch: (url: string, { dispatcher: _, ...options }: RequestInit & { dispatcher?: unknown }) =>
      fetch(url, options),
  });
}

// An application on this machine may use any port of the loopback, so one client serves all replicas.
function clientOf({ clientId, clientSecret, backchannel }: Made): Record<string, unknown> {
  return {
    client_id: clientId,
    client_secret: clientSecret,
    application_type: "native",
    redirect_uris: ["127.0.0.1", "localhost", "[::1]"].map((host) =>
      `http://${host}/login/callback`
    ),
    grant_types: ["authorization_code"],
    response_types: ["code"],
    id_token_signed_response_alg: algorithm,
    backchannel_logout_session_required: true, // its tokens have a sid
    ...(backchannel === undefined ? {} : { backchannel_logout_uri: backchannel }),
  };
}

// By default it asks users of an application on their own machine whether they allow that.
function withoutConsent(): unknown {
  const policy = interactionPolicy.base();
  policy.remove("consent");
  return policy;
}

interface Answered {
  type: string;
  body: string;
}

function show(context: Answered, page: string): void {
  context.type = "html";
  context.body = page;
}

interface Asked {
  oidc: {
    client: { clientId: string };
    provider: Provider;
    session: { accountId: string; grantIdFor(clientId: string): string | undefined };
  };
}

async function allowed({ oidc: { client, provider, session } }: Asked): Promise<unknown> {
  const { clientId } = client;
  const known = session.grantIdFor(clientId);
  const found = known === undefined ? undefined : await provider.Grant.find(known);
  if (found) return found;
  const grant = new provider.Grant({ clientId, accountId: session.accountId });
  grant.addOIDCScope(scope);
  await grant.save();
  return grant;
}
