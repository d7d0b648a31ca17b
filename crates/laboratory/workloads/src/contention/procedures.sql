-- Moves money between two wallets. The contract looks at both balances before it decides, so that two transfers between
-- the same wallets conflict under every protocol; a command alone would commute.
CREATE PROCEDURE transfer(sender bigint, receiver bigint, amount bigint, OUT sender_balance bigint, OUT receiver_balance bigint)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT balance INTO sender_balance FROM wallets WHERE wallet_id = sender;
    SELECT balance INTO receiver_balance FROM wallets WHERE wallet_id = receiver;
    IF sender_balance IS NULL OR receiver_balance IS NULL THEN
        RAISE EXCEPTION 'wallet % or % does not exist', sender, receiver USING ERRCODE = 'P0002';
    END IF;
    IF sender_balance < amount THEN
        RAISE EXCEPTION 'wallet % cannot pay %', sender, amount USING HINT = 'Pay less, or fill it first.';
    END IF;
    sender_balance := sender_balance - amount;
    receiver_balance := receiver_balance + amount;
    UPDATE wallets SET balance = sender_balance WHERE wallet_id = sender;
    UPDATE wallets SET balance = receiver_balance WHERE wallet_id = receiver;
END
$$;
